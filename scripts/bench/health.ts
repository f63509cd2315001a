import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const RETRY_EVERY_MS = 2

/** Requests a path until the answer is 200. The server may not listen yet. `signal` is the deadline. */
export async function healthy(port: number, path: string, signal: AbortSignal): Promise<void> {
  while ((await statusOf(port, path, signal)) !== 200) await sleep(RETRY_EVERY_MS, undefined, { signal })
}

/** Resolves with the status; 0 without an answer. */
function statusOf(port: number, path: string, signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    const req = get({ host: '127.0.0.1', port, path, agent: false, signal }, (res) => {
      res.resume()
      res.once('close', () => resolve(res.statusCode ?? 0))
    })
    req.once('error', () => resolve(0))
  })
}
