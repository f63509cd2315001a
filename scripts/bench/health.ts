import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const ASK_EVERY_MS = 2

/** Resolves at the first 200 of a server that may not listen yet. */
export async function healthy(port: number, path: string, signal: AbortSignal): Promise<void> {
  while ((await ask(port, path, signal)) !== 200) await sleep(ASK_EVERY_MS, undefined, { signal })
}

/** The status; 0 where nobody answers. */
function ask(port: number, path: string, signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    const req = get({ host: '127.0.0.1', port, path, agent: false, signal }, (res) => {
      res.resume()
      res.once('close', () => resolve(res.statusCode ?? 0))
    })
    req.once('error', () => resolve(0))
  })
}
