import { connect, type Socket } from 'node:net'
import type { ResponseReader } from './response-reader.ts'

const BUFFER_BYTES = 64 * 1024

/** Creates a connect function whose connections all read into one buffer. Readers must not keep it. */
export function createConnect() {
  const buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  return (port: number, reader: ResponseReader, onFailure: (cause: Error) => void): Socket => {
    const socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer,
        callback(length) {
          try {
            reader.read(buffer, length)
          } catch (cause) {
            onFailure(cause as Error)
          }
          return true
        },
      },
    })
    return socket.on('error', onFailure)
  }
}

export type Connect = ReturnType<typeof createConnect>
