package testbed.tiered;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutorService;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The part of an object store that the manager needs, in this process; tests order its failures. */
final class FakeStore implements AutoCloseable {
    /** A failure instead of an answer. */
    enum Trouble {
        NONE,
        BUSY,
        SILENT,
        CUT,
        EMPTY
    }

    static final String BUCKET = "segments";
    private static final Pattern RANGE = Pattern.compile("bytes=(\\d+)-(\\d+)");

    final Map<String, byte[]> objects = new ConcurrentSkipListMap<>();
    final Map<String, TreeMap<Integer, byte[]>> uploads = new ConcurrentSkipListMap<>();
    final List<String> requests = new CopyOnWriteArrayList<>();
    private final Deque<Trouble> troubles = new ArrayDeque<>();
    private final HttpServer server;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private int begun;

    FakeStore() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", this::answer);
        server.start();
    }

    String endpoint() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    /** The next requests have these troubles, one each. */
    synchronized void next(Trouble... these) {
        troubles.addAll(List.of(these));
    }

    private synchronized Trouble trouble() {
        return troubles.poll();
    }

    private void answer(HttpExchange http) throws IOException {
        String query = http.getRequestURI().getRawQuery();
        String range = http.getRequestHeaders().getFirst("Range");
        requests.add(http.getRequestMethod() + (query == null ? "" : " " + query.replaceAll("=[^&]*", ""))
                + (range == null ? "" : " " + range));
        byte[] body = http.getRequestBody().readAllBytes();
        Trouble trouble = trouble();
        try (http) {
            if (trouble == Trouble.SILENT) {
                Thread.sleep(2_500);
            } else if (trouble == Trouble.BUSY) {
                error(http, 503, "SlowDown");
            } else {
                serve(http, query == null ? "" : query, body, trouble);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private void serve(HttpExchange http, String query, byte[] body, Trouble trouble) throws IOException {
        String path = http.getRequestURI().getPath();
        String key = path.length() > BUCKET.length() + 2 ? path.substring(BUCKET.length() + 2) : "";
        Map<String, String> words = words(query);
        switch (http.getRequestMethod() + (words.isEmpty() ? "" : " " + String.join(" ", words.keySet()))) {
            case "PUT" -> {
                objects.put(key, body);
                send(http, 200, new byte[0], null);
            }
            case "GET" -> get(http, key, trouble);
            case "GET prefix uploads" -> send(http, 200, listed(words.get("prefix")), null);
            case "POST delete" -> {
                Matcher each = Pattern.compile("<Key>(.*?)</Key>").matcher(new String(body, StandardCharsets.UTF_8));
                while (each.find()) {
                    objects.remove(each.group(1));
                }
                send(http, 200, bytes("<DeleteResult></DeleteResult>"), null);
            }
            case "POST uploads" -> {
                String upload = key + "#" + begun++;
                uploads.put(upload, new TreeMap<>());
                send(http, 200, bytes("<InitiateMultipartUploadResult><UploadId>" + upload
                        + "</UploadId></InitiateMultipartUploadResult>"), null);
            }
            case "PUT partNumber uploadId" -> {
                uploads.get(words.get("uploadId")).put(Integer.valueOf(words.get("partNumber")), body);
                http.getResponseHeaders().add("ETag", "\"" + Arrays.hashCode(body) + "\"");
                send(http, 200, new byte[0], null);
            }
            case "POST uploadId" -> {
                ByteArrayOutputStream whole = new ByteArrayOutputStream();
                for (byte[] part : uploads.remove(words.get("uploadId")).values()) {
                    whole.write(part);
                }
                objects.put(key, whole.toByteArray());
                send(http, 200, bytes("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"), null);
            }
            case "DELETE uploadId" -> {
                uploads.remove(words.get("uploadId"));
                send(http, 204, new byte[0], null);
            }
            default -> error(http, 501, "NotImplemented");
        }
    }

    private void get(HttpExchange http, String key, Trouble trouble) throws IOException {
        byte[] content = objects.get(key);
        if (content == null) {
            error(http, 404, "NoSuchKey");
            return;
        }
        String range = http.getRequestHeaders().getFirst("Range");
        Matcher wanted = RANGE.matcher(range == null ? "" : range);
        if (!wanted.matches()) {
            send(http, 200, content, trouble);
            return;
        }
        int from = Integer.parseInt(wanted.group(1));
        int to = Math.min(content.length - 1, Integer.parseInt(wanted.group(2)));
        if (from > to) {
            error(http, 416, "InvalidRange");
            return;
        }
        http.getResponseHeaders().add("Content-Range", "bytes " + from + "-" + to + "/" + content.length);
        send(http, 206, Arrays.copyOfRange(content, from, to + 1), trouble);
    }

    private byte[] listed(String prefix) {
        StringBuilder told = new StringBuilder("<ListMultipartUploadsResult>");
        for (String upload : uploads.keySet()) {
            if (upload.startsWith(prefix)) {
                told.append("<Upload><Key>").append(upload, 0, upload.lastIndexOf('#'));
                told.append("</Key><UploadId>").append(upload).append("</UploadId></Upload>");
            }
        }
        return bytes(told.append("</ListMultipartUploadsResult>").toString());
    }

    private static void error(HttpExchange http, int status, String code) throws IOException {
        send(http, status, bytes("<Error><Code>" + code + "</Code><Message>" + code + "</Message></Error>"), null);
    }

    private static void send(HttpExchange http, int status, byte[] body, Trouble trouble) throws IOException {
        http.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        try (OutputStream out = http.getResponseBody()) {
            int whole = body.length;
            // What is announced and not sent breaks the connection off.
            out.write(body, 0, trouble == Trouble.CUT ? whole / 2 : trouble == Trouble.EMPTY ? 0 : whole);
        } catch (IOException expected) {
            if (trouble == null || trouble == Trouble.NONE) {
                throw expected;
            }
        }
    }

    private static Map<String, String> words(String query) {
        Map<String, String> found = new TreeMap<>();
        for (String word : query.isEmpty() ? new String[0] : query.split("&")) {
            String[] parts = word.split("=", 2);
            String value = parts.length == 1 ? "" : parts[1];
            found.put(parts[0], java.net.URLDecoder.decode(value, StandardCharsets.UTF_8));
        }
        return new TreeMap<>(new HashMap<>(found));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** How many requests there were of this method, with these query words. */
    long count(String what) {
        return requests.stream().filter(each -> each.equals(what) || each.startsWith(what + " bytes=")).count();
    }

    List<String> drain() {
        List<String> seen = new ArrayList<>(requests);
        requests.clear();
        return seen;
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
