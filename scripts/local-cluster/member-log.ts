import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

type Options = { name: string; dataDir: string; say: (line: string) => void }

/** Keeps the whole output of a process in `DATA_DIR/logs/<name>.log`, and says its warnings, its errors and what is no log line (D1.1). */
export function createMemberLog({ name, dataDir, say }: Options): (text: string) => void {
  const dir = join(dataDir, 'logs')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const path = join(dir, `${name.replaceAll(' ', '-')}.log`)
  let rest = ''
  return (text) => {
    appendFileSync(path, text, { mode: 0o600 })
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '' && !QUIET.test(line)) say(`${name}: ${line}`)
  }
}

/** A log line of the level info or debug. */
const QUIET = /^\{"time":"[^"]*","level":"(?:info|debug)"/
