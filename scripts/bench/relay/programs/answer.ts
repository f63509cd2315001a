import type { Ready } from '../peer.ts'

/** Options of all programs; each uses some of them. */
export type Options = { redisUrl: string; keepaliveMs: number }

/** The options with which the bench started this program. */
export const readOptions = (): Options => JSON.parse(process.argv[2] ?? '{}') as Options

type Call = { id: number; method: string; args: never }

/** Reports to the bench that this program is ready, answers its calls, and exits with it. */
export function answerCalls(ready: Ready, methods: Record<string, (args: never) => unknown> = {}): void {
  process.once('disconnect', () => process.exit())
  process.on('message', (message) => {
    const { id, method, args } = message as Call
    void answer(async () => methods[method]?.(args)).then((outcome) => process.send?.({ id, ...outcome }))
  })
  process.send?.({ id: 0, value: ready })
}

async function answer(work: () => Promise<unknown>): Promise<{ value: unknown } | { failure: string }> {
  try {
    return { value: (await work()) ?? null }
  } catch (cause) {
    return { failure: String(cause) }
  }
}
