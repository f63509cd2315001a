import { type Entry, now } from '../../history.ts'

const TAIL_CHARS = 2_000

/** Looks for secrets in what the processes print and in what they answer. */
export class SecretWatch {
  readonly leaks: Entry[] = []
  readonly #secrets: readonly (readonly [string, string])[]
  #tail = ''
  /** Characters that were searched. */
  searched = 0

  /** Secrets by their name. */
  constructor(secrets: Readonly<Record<string, string>>) {
    this.#secrets = Object.entries(secrets)
  }

  /** Takes the next piece of output. Pieces of several processes may come mixed, so a secret that is split over two is found only where nothing came in between. */
  readonly take = (text: string): void => {
    this.searched += text.length
    const whole = this.#tail + text
    for (const [secret, value] of this.#secrets) {
      if (!whole.includes(value)) continue
      this.leaks.push({ kind: 'leak', t: now(), where: 'the output of a process', secret })
      this.#tail = ''
      return
    }
    this.#tail = whole.slice(-TAIL_CHARS)
  }
}
