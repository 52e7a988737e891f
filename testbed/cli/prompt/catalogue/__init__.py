"""The commands of the prompt: each module declares COMMANDS."""
