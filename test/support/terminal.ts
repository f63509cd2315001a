import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { COMPILE_CACHE } from '../../scripts/node-options.ts'
import { TerminalScreen } from './terminal-screen.ts'
import { until } from './until.ts'

type Size = { columns?: number; rows?: number }

/** A program in a pseudo-terminal, made by util-linux's `script`: what its screen shows, keys, and its exit code. */
export class Terminal {
  readonly screen: TerminalScreen
  readonly exited: Promise<number | null>
  readonly #process: ChildProcess
  /** Its output, with its escape sequences. */
  written = ''

  constructor(command: readonly string[], env: Record<string, string>, { columns = 80, rows = 24 }: Size = {}) {
    this.screen = new TerminalScreen(columns)
    const line = `stty cols ${columns} rows ${rows}; exec ${command.map(quoted).join(' ')}`
    this.#process = spawn('script', ['--quiet', '--flush', '--return', '--command', line, '/dev/null'], {
      env: {
        PATH: process.env['PATH'],
        TERM: 'xterm-256color',
        LANG: 'C.UTF-8',
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        ...env,
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.written += text
      this.screen.write(text)
    })
    this.exited = once(this.#process, 'close').then(([code]) => code as number | null)
  }

  /** Resolves once the screen shows it, and with what it shows. */
  async shows(pattern: RegExp): Promise<string> {
    await until(() => pattern.test(this.screen.text), {
      what: `${pattern} on the screen`,
      lastSeen: () => this.screen.text,
    })
    return this.screen.text
  }

  type(keys: string): void {
    this.#process.stdin?.write(keys)
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
