import type { Script } from './source/script.ts'

export const BASE_PATH = '/api/v1'
export const RUN_PATH = `${BASE_PATH}/agent/run`
/** The path of the baselines. `?per_write=16` sends 16 events with one write. */
export const BARE_PATH = '/bare'
export const TOKEN = 'bench-token'

/** Where to start a run. */
export type Target = { port: number; path: string }

/** The complete request that starts a run. It is the same for every server of the bench. */
export function requestText({ port, path }: Target, script: Script): string {
  const body = JSON.stringify({ prompt: JSON.stringify(script) })
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${TOKEN}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
