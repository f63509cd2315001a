import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

type Options = { dataDir: string; say: (line: string) => void }

export type MemberLogs = {
  /** The folder of the files. */
  dir: string
  /** Opens the log of a process: a function that takes its output. */
  open(name: string): (text: string) => void
}

/** Keeps the whole output of each process in `DATA_DIR/logs/<name>.log`, and says its warnings, its errors and what is no log line (D1.1). */
export function createMemberLogs({ dataDir, say }: Options): MemberLogs {
  const dir = join(dataDir, 'logs')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  return {
    dir,
    open(name) {
      const path = join(dir, `${name.replaceAll(' ', '-')}.log`)
      let rest = ''
      return (text) => {
        appendFileSync(path, text, { mode: 0o600 })
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) if (line !== '' && !QUIET.test(line)) say(`${name}: ${line}`)
      }
    },
  }
}

/** A log line of the level info or debug. */
const QUIET = /^\{"time":"[^"]*","level":"(?:info|debug)"/
