import { type ChildProcess, fork } from 'node:child_process'

type Message = { id: number; content: unknown }

/** A process that runs another script of this folder, and answers questions. */
export class Child {
  readonly #process: ChildProcess
  readonly #asked = new Map<number, (answer: never) => void>()
  #asks = 0

  constructor(script: string, given: object) {
    this.#process = fork(new URL(script, import.meta.url), [JSON.stringify(given)])
    this.#process.on('message', ({ id, content }: Message) => {
      this.#asked.get(id)?.(content as never)
      this.#asked.delete(id)
    })
    this.#process.once('exit', () => {
      throw new Error(`${script} has ended`)
    })
  }

  ask<T>(content: unknown): Promise<T> {
    const id = this.#asks++
    return new Promise<T>((resolve) => {
      this.#asked.set(id, resolve)
      this.#process.send({ id, content } satisfies Message)
    })
  }

  close(): void {
    this.#process.removeAllListeners('exit').kill()
  }
}

/** Returns the object with which the parent has started this process. */
export const given = (): unknown => JSON.parse(process.argv[2] ?? '{}')

/** Answers what the parent asks, and ends with it. */
export function answerParent(answer: (question: never) => Promise<unknown>): void {
  process.on('message', ({ id, content }: Message) => {
    void answer(content as never).then((said) => process.send?.({ id, content: said } satisfies Message))
  })
  process.on('disconnect', () => process.exit())
  if (!process.connected) process.exit() // It has gone while this process started.
}
