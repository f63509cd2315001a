import type { Response } from 'express'

/** Aborts when the client has gone before its answer was complete. */
export function leaving(res: Response): AbortSignal {
  const controller = new AbortController()
  if (res.closed) controller.abort()
  else res.once('close', () => res.writableFinished || controller.abort())
  return controller.signal
}

/** Answers with what `work` returns. When the client leaves, `signal` is aborted; its reason is then not an error. */
export async function answerUntilLeft(res: Response, work: (signal: AbortSignal) => Promise<object>): Promise<void> {
  const signal = leaving(res)
  try {
    const body = await work(signal)
    if (!res.closed) res.json(body)
  } catch (cause) {
    if (cause !== signal.reason) throw cause
  }
}
