import { fileURLToPath } from 'node:url'

// How Node runs the product. `scripts/start` says the same in bash; a test keeps the two equal.

const MAIN_FLAGS = { standalone: ['--max-semi-space-size=4'], cluster: ['--max-semi-space-size=16'] }

/** Node's flags for a process of this form. A small young generation keeps an idle process small, a large one makes a busy one faster. */
export const nodeFlags = (form: 'standalone' | 'cluster'): readonly string[] => MAIN_FLAGS[form]

/** With this folder in NODE_COMPILE_CACHE a start does not strip types: the compiler for that takes 17 MiB and most of the time. */
export const COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url))
