import type { FrameStream } from '../../shared/cluster/journal/frame-stream.ts'
import { AppError } from '../../shared/kernel/errors.ts'

/** Reads a stream to its end. */
export async function textOf(frames: FrameStream): Promise<string> {
  let text = ''
  for await (const chunk of frames) text += Buffer.from(chunk.text)
  return text
}

/** The numbers of the frames of a stream. */
export const idsOf = (text: string) => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))

/** The names of the events of a stream. */
export const eventsOf = (text: string) => [...text.matchAll(/^event: (\w+)$/gm)].map(([, event]) => event)

/** The HTTP status of a call: 200, or that of its refusal. Rejects with any other failure. */
export const statusOf = (act: Promise<unknown>): Promise<number> =>
  act.then(
    () => 200,
    (cause: unknown) => (cause instanceof AppError ? cause.status : Promise.reject(cause)),
  )
