package testbed.defects.cost;

import testbed.defects.Refused;

import java.io.IOException;
import java.io.Reader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;

/** A listener of this broker for clients, out of the properties file that its command line names. */
final class Listener {
    private Listener() {}

    /** Returns the address; throws {@link Refused} when the file has no listener for clients that is in clear text. */
    static InetSocketAddress of(String command) {
        Path file = Arrays.stream(command.split(" "))
                .filter(each -> each.endsWith(".properties"))
                .findFirst()
                .map(Path::of)
                .orElseThrow(() -> new Refused("no properties file in the command line: " + command));
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(file)) {
            properties.load(reader);
        } catch (IOException error) {
            throw new Refused("%s cannot be read: %s".formatted(file, error));
        }
        return of(properties);
    }

    static InetSocketAddress of(Properties properties) {
        List<String> controllers = list(properties.getProperty("controller.listener.names", ""));
        Map<String, String> protocols = list(properties.getProperty("listener.security.protocol.map", "")).stream()
                .collect(Collectors.toMap(each -> each.split(":")[0], each -> each.split(":")[1]));
        for (String each : list(properties.getProperty("listeners", ""))) {
            String name = each.substring(0, each.indexOf("://"));
            if (!controllers.contains(name) && protocols.getOrDefault(name, name).equals("PLAINTEXT")) {
                String address = each.substring(each.indexOf("://") + 3);
                int colon = address.lastIndexOf(':');
                return new InetSocketAddress(host(address.substring(0, colon)), Integer.parseInt(address.substring(colon + 1)));
            }
        }
        throw new Refused("no listener for clients in clear text among \"%s\""
                .formatted(properties.getProperty("listeners", "")));
    }

    // A listener without a host, or on all addresses, is reached on the loopback.
    private static String host(String host) {
        return host.isEmpty() || host.equals("0.0.0.0") || host.equals("[::]")
                ? InetAddress.getLoopbackAddress().getHostAddress()
                : host;
    }

    private static List<String> list(String text) {
        return Arrays.stream(text.split(",")).map(String::strip).filter(each -> !each.isEmpty()).toList();
    }
}
