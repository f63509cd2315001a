import type { Script } from './source/script.ts'

export const BASE_PATH = '/api/v1'
export const RUN_PATH = `${BASE_PATH}/agent/run`
/** Of a baseline's own route. `?per_write=16` puts so many events into one write. */
export const BARE_PATH = '/bare'
export const TOKEN = 'bench-token'

/** Where a run is asked for. */
export type Target = { port: number; path: string }

/** The request for a run, whole: every server of the bench is asked in the same words. */
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
