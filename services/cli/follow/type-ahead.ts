import { StringDecoder } from 'node:string_decoder'
import type { Io } from '../io.ts'
import type { Style } from '../text/style.ts'
import type { Screen } from './ask-person.ts'

type Place = { screen: Screen; steer(text: string): Promise<unknown> }

/**
 * Reads what the user types while a run works. After Enter the line waits for the end of the run; Tab and `/steer` send it to the run as a
 * steering text. While a question is open, the keys answer the question.
 */
export class TypeAhead {
  /** The lines that wait, oldest first. */
  readonly queued: string[] = []
  readonly #io: Io
  readonly #style: Style
  #text = ''
  #place: Place | undefined
  #stop: (() => void) | undefined
  #questions = 0

  constructor(io: Io, style: Style) {
    this.#io = io
    this.#style = style
  }

  begin(place: Place): void {
    this.#place = place
    this.#listen()
  }

  /** Gives the key presses to a question until it is answered. */
  async during<T>(question: () => Promise<T>): Promise<T> {
    this.#questions++
    this.#silence()
    try {
      return await question()
    } finally {
      this.#questions--
      this.#listen()
    }
  }

  /** The run is over. */
  end(): void {
    this.#silence()
    this.#place = undefined
  }

  /** Call it when a run has failed or was cancelled. The waiting lines are not sent: they become the text that the user edits. */
  hold(): void {
    this.#text = [...this.queued.splice(0), this.#text].join(' ').trim()
  }

  /** Gives the line that was not sent. */
  takeBack(): string {
    const text = this.#text
    this.#text = ''
    return text
  }

  #listen(): void {
    if (this.#stop || !this.#place || this.#questions > 0) return
    const { stdin } = this.#io
    const decoder = new StringDecoder('utf8')
    const onData = (bytes: Buffer) => this.#take(decoder.write(bytes))
    stdin.setRawMode(true)
    stdin.on('data', onData)
    stdin.resume()
    this.#stop = () => {
      stdin.off('data', onData)
      stdin.setRawMode(false)
      stdin.pause()
    }
    this.#draw()
  }

  #silence(): void {
    this.#stop?.()
    this.#stop = undefined
    this.#place?.screen.setPrompt(undefined)
  }

  #take(typed: string): void {
    if (typed.startsWith('\u001b')) return typed.length === 1 ? this.#show('') : undefined // Escape, or an arrow key.
    for (const key of typed) {
      if (key === '\u0003') this.#io.interrupt()
      else if (key === '\r' || key === '\n') this.#enter()
      else if (key === '\t') this.#tell(this.#text)
      else if (key === '\u007f' || key === '\b') this.#show(Array.from(this.#text).slice(0, -1).join(''))
      else if (key === '\u0015') this.#show('')
      else if (key >= ' ') this.#show(this.#text + key)
    }
  }

  #enter(): void {
    const line = this.#text.trim()
    const [, told] = /^\/steer\s+(.*)$/s.exec(line) ?? []
    if (told !== undefined) return this.#tell(told)
    this.#show('')
    if (line === '') return
    this.queued.push(line)
    this.#print(`waits for the end of this run: ${line}`)
  }

  #tell(text: string): void {
    const told = text.trim()
    if (told === '') return
    this.#show('')
    const refused = (cause: unknown) => {
      this.#show(told + this.#text)
      this.#print(`not told: ${cause instanceof Error ? cause.message : String(cause)}`)
    }
    this.#place?.steer(told).then(() => this.#print(`told, and read next: ${told}`), refused)
  }

  #show(text: string): void {
    this.#text = text
    this.#draw()
  }

  #draw(): void {
    const { symbols, dim } = this.#style
    const line = () => `${symbols.prompt} ${this.#text}  ${dim(`Enter: when it is done${symbols.sep}Tab: tell it now`)}`
    if (this.#stop) this.#place?.screen.setPrompt(this.#text === '' ? undefined : line)
  }

  #print(line: string): void {
    this.#place?.screen.print(this.#style.dim(`  ${line}`))
  }
}
