import { constants } from 'node:os'
import { EXIT } from '../exit-codes.ts'
import type { Io } from '../io.ts'

const ESC = '\u001b'
const ENTER = `${ESC}[?1049h${ESC}[?25l`
const LEAVE = `${ESC}[?25h${ESC}[?1049l`
/** A key: an arrow or another special key, or one character. */
const KEY = new RegExp(String.raw`${ESC}\[[\d;]*[A-Za-z~]|[^]`, 'gu')

type Listeners = {
  onKey(key: string): void
  onResize(): void
  /** Ctrl-C, SIGINT or SIGTERM, with its exit code. */
  onEnd(code: number): void
}

/** Takes over the whole terminal and its keys until `close`. After a crash the terminal is restored too, so that the error message is visible. */
export class FullScreen {
  readonly #io: Io
  readonly #releases: readonly (() => void)[]

  constructor(io: Io, { onKey, onResize, onEnd }: Listeners) {
    const { stdin, stdout } = io
    const interrupted = () => onEnd(EXIT.cancelled)
    const onData = (bytes: Buffer) => {
      for (const [key] of bytes.toString('utf8').matchAll(KEY)) {
        if (key === '\u0003') interrupted()
        else onKey(key)
      }
    }
    const resized = () => {
      stdout.write(`${ESC}[2J`)
      onResize()
    }
    this.#io = io
    stdin.setRawMode(true)
    stdin.on('data', onData).resume()
    stdout.on('resize', resized)
    stdout.write(ENTER)
    this.#releases = [
      io.onInterrupt(interrupted),
      io.onTerminate(() => onEnd(128 + constants.signals.SIGTERM)),
      io.onCrash(() => this.close()),
      () => stdin.off('data', onData).pause(),
      () => stdout.off('resize', resized),
    ]
  }

  draw(lines: readonly string[]): void {
    this.#io.stdout.write(`${ESC}[H${lines.map((line) => `${line}${ESC}[K`).join('\r\n')}${ESC}[J`)
  }

  close(): void {
    for (const release of this.#releases) release()
    this.#io.stdin.setRawMode(false)
    this.#io.stdout.write(LEAVE)
  }
}
