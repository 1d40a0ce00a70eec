"""The commands of `pathnav`, one file each; they read options, call a room, and print."""
