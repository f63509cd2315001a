import type { Socket } from 'node:net'

const TAIL_CHARS = 2_000
const LAST_CHUNK = '\r\n0\r\n\r\n'

/** Reads a paused socket on, to the end of the stream or of the connection, and tells the last of it. */
export async function readTail(socket: Socket): Promise<string> {
  const ended = Promise.withResolvers<void>()
  let tail = ''
  socket.on('data', (chunk: string) => {
    tail = (tail + chunk).slice(-TAIL_CHARS)
    if (tail.endsWith(LAST_CHUNK)) socket.destroy()
  })
  socket.once('close', () => ended.resolve())
  socket.resume()
  await ended.promise
  return tail
}
