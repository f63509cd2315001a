import { fileURLToPath } from 'node:url'

// How Node runs the product's processes. `scripts/start` sets the same in bash; a test keeps the two equal.

/**
 * A young generation of 16 MiB: short runs need no garbage collection of the old one, and an idle process does not get larger. The old one is collected each time it has
 * doubled. V8 lets it grow to four times, and keeps the pages: bodies of megabytes, one after the other, would leave 180 MiB more.
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=16', '--heap-growing-percent=100']

/** The folder for NODE_COMPILE_CACHE. Without it Node strips the types at each start, which takes 17 MiB and most of the time. */
export const COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url))
