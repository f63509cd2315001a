import type { Cli } from '../../services/cli/cli.ts'
import type { Io } from '../../services/cli/io.ts'
import type { Output } from '../../services/cli/output.ts'
import { createStyle } from '../../services/cli/text/style.ts'
import type { AgentEngine } from '../../shared/client/client.ts'

/** The output of a command without colours, as in a pipe unless `changes` say otherwise. */
export function collect(changes: Partial<Output> = {}) {
  const written = { out: '', err: '' }
  const output: Output = {
    style: createStyle({ hasColours: false, isUtf8: true }),
    ...{ isLive: false, isTextWrapped: false, isShared: false, columns: () => 80, rows: () => 24 },
    out: (text) => void (written.out += text),
    err: (text) => void (written.err += text),
    ...changes,
  }
  return { output, written }
}

/** The parts of the command line around a client of which a test gives what its command calls. */
export function cliOf(client: object) {
  const { output, written } = collect()
  const codes: number[] = []
  const io = {
    stdin: { isTTY: false },
    stderr: { isTTY: false },
    cwd: '/',
    onInterrupt: () => () => {},
  } as unknown as Io
  const cli = {
    ...{ io, output, engine: async () => client as AgentEngine, exitWith: (code: number) => void codes.push(code) },
    target: () => Promise.reject(new Error('not expected')),
  } satisfies Cli
  return { cli, written, codes }
}
