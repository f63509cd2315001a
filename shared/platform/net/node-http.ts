import { createRequire } from 'node:module'

/** Required, because an import reads all exports of the module, some of which load the whole of Node's `fetch`: 45 ms and 13 MiB. */
export const nodeHttp: typeof import('node:http') = createRequire(import.meta.url)('node:http')
