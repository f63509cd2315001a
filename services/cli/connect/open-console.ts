import { spawn } from 'node:child_process'
import { platform } from 'node:os'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import type { Cli } from '../cli.ts'
import type { Io } from '../io.ts'

/** Longer lines of a log are not read. */
const MOST_CHARS = 64 * 1024

/** Reads the log of a server until it listens, and then calls back with the address of its console. */
export function findAddress(log: Readable, onListening: (url: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  const onData = (bytes: Buffer) => {
    const lines = (rest + decoder.write(bytes)).split('\n')
    rest = (lines.pop() ?? '').slice(0, MOST_CHARS)
    const url = lines.map(addressIn).find((found) => found !== undefined)
    if (url === undefined) return
    log.off('data', onData)
    onListening(url)
  }
  log.on('data', onData)
}

function addressIn(line: string): string | undefined {
  try {
    const { msg, url } = JSON.parse(line) as { msg?: unknown; url?: unknown }
    return msg === 'listening' && typeof url === 'string' ? new URL('/', url).href : undefined
  } catch {
    return undefined // It is not a line of the log.
  }
}

/** Opens the address in the browser that BROWSER names, or in that of the desktop. Prints the address if there is no browser. */
export function openInBrowser(url: string, { io, output }: Cli): void {
  const print = () => output.err(`The console is at ${url}\n`)
  const program = browserOf(io)
  if (program === undefined) return print()
  spawn(program, [url], { stdio: 'ignore', env: io.env, detached: true })
    .once('error', print)
    .once('exit', (code) => code !== 0 && print())
    .unref()
}

function browserOf({ env }: Io): string | undefined {
  if (env['BROWSER']) return env['BROWSER']
  if (platform() === 'darwin') return 'open'
  return env['DISPLAY'] || env['WAYLAND_DISPLAY'] ? 'xdg-open' : undefined
}
