package relaylists

// Parse is the reader of tags from outside.
var Parse = parse

// RememberedLists is how many lists a cache holds.
const RememberedLists = rememberedLists
