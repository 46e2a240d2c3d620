package within

// dontWait is nothing: a folder here has no pipes.
const dontWait = 0
