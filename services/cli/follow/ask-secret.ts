import type { Io } from '../io.ts'

const MOST = 65_536

/** Asks for a text that is not shown. `undefined` after Ctrl-C or Ctrl-D. */
export function askSecret({ stdin, stderr }: Io, question: string): Promise<string | undefined> {
  stdin.setRawMode(true) // First, so that a token that is pasted at once is not shown.
  stderr.write(question)
  return new Promise((resolve) => {
    let typed = ''
    const end = (secret?: string) => {
      stdin.off('data', onData)
      stdin.setRawMode(false)
      stdin.pause()
      stderr.write('\n')
      resolve(secret)
    }
    const onData = (bytes: Buffer) => {
      for (const key of bytes.toString('utf8')) {
        if (key === '\r' || key === '\n') return end(typed)
        if (key === '\u0003' || key === '\u0004') return end()
        if (key === '\u007f' || key === '\b') typed = typed.slice(0, -1)
        else if (key >= ' ' && typed.length < MOST) typed += key
      }
    }
    stdin.on('data', onData)
    stdin.resume()
  })
}
