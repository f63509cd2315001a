import type { Output } from '../output.ts'
import { bytes, timeLeft } from './figures.ts'
import { LiveRegion } from './live-region.ts'
import { cut } from './width.ts'

const DRAW_MS = 250

/**
 * Shows how much of a file was sent and how long the rest takes, as a line of the terminal, until it is closed. Without
 * a terminal, or for a short upload, it shows nothing.
 */
export class SentMeter {
  readonly #name: string
  readonly #total: number
  readonly #output: Output
  readonly #live: LiveRegion
  readonly #begun = performance.now()
  readonly #ticker: NodeJS.Timeout | undefined
  #done = 0

  constructor(name: string, total: number, output: Output) {
    this.#name = name
    this.#total = total
    this.#output = output
    this.#live = new LiveRegion((text) => output.err(text))
    this.#ticker = output.isLive ? setInterval(() => this.#draw(), DRAW_MS) : undefined
  }

  note(done: number): void {
    this.#done = done
  }

  close(): void {
    clearInterval(this.#ticker)
    this.#live.update([])
  }

  #draw(): void {
    const [done, total, { style }] = [this.#done, this.#total, this.#output]
    const left = timeLeft({ done, total, elapsedMs: performance.now() - this.#begun })
    const parts =
      done < total
        ? [`${bytes(done)} of ${bytes(total)}`, `${Math.floor((done / total) * 100)} %`, left]
        : [`${bytes(total)} sent`, 'waiting for the answer']
    const figures = parts.filter(Boolean).join(style.symbols.sep)
    const name = cut(this.#name, Math.max(0, this.#output.columns() - figures.length - 4), style.symbols.cut)
    this.#live.update([`${style.cyan(style.symbols.busy)} ${name} ${figures}`])
  }
}
