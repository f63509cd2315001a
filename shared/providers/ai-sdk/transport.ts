/** How long an idle connection is kept for the next turn; a server that announces less gets less. */
const KEEP_ALIVE_MS = 30_000

/** `fetch` over a pool of its own. It has one limit, for connecting: the others belong to the call, and `CallWatch` keeps them. */
export async function createTransport({ connectMs }: { connectMs: number }): Promise<typeof globalThis.fetch> {
  // Some 25 MiB, which a process that calls no provider need not hold.
  const undici = await import('undici')
  const dispatcher = new undici.Agent({
    connect: { timeout: connectMs },
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
  })
  const fetch: typeof undici.fetch = (url, init) => {
    const headers = new undici.Headers(init?.headers)
    headers.set('accept-encoding', 'identity') // A compressed stream is held back until it is worth a block.
    return undici.fetch(url, { ...init, headers, dispatcher })
  }
  return fetch as unknown as typeof globalThis.fetch
}
