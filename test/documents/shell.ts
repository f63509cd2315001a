import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'

/** Curl prints only the answer, and fails for one from 400 on. */
const CURLRC = 'silent\nshow-error\nfail-with-body\n'
const END = '@@end-of-block@@'

/** One bash that executes blocks of commands one after the other, so that they share variables. */
export class Shell {
  readonly #bash: ChildProcessWithoutNullStreams
  readonly #ended: Promise<unknown>
  readonly #closed: Promise<unknown>
  #stdout = ''
  #stderr = ''
  #onOutput = () => {}

  private constructor(bash: ChildProcessWithoutNullStreams) {
    this.#bash = bash
    this.#ended = once(bash, 'exit')
    this.#closed = once(bash, 'close') // Later, when a program in the background keeps the output open.
    bash.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text
      this.#onOutput()
    })
    bash.stderr.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text))
    bash.stdin.on('error', () => {}) // It has ended, which `run` reports.
  }

  /** `cwd` is also the folder of curl's settings. */
  static async start({ cwd, env }: { cwd: string; env: Readonly<Record<string, string>> }): Promise<Shell> {
    await writeFile(`${cwd}/.curlrc`, CURLRC)
    const bash = spawn('bash', ['--noprofile', '--norc'], { cwd, env: { ...env, CURL_HOME: cwd }, detached: true })
    bash.stdin.write('set -eu\n')
    return new Shell(bash)
  }

  /** Executes a block and resolves with what it prints. Rejects with the output when a command fails, which ends the shell. */
  async run(block: string): Promise<string> {
    this.#stdout = ''
    this.#stderr = ''
    const done = Promise.withResolvers<void>()
    this.#onOutput = () => this.#stdout.includes(END) && done.resolve()
    this.#bash.stdin.write(`${block}\nprintf '%s' '${END}'\n`)
    const hasEnded = this.#ended.then(() => {
      throw new Error(`the command failed:\n${block}\nIt printed:\n${this.#stdout}\n${this.#stderr}`)
    })
    await Promise.race([done.promise, hasEnded])
    return this.#stdout.replace(END, '')
  }

  /** Ends the shell and everything that it has left running in the background. */
  async close(): Promise<void> {
    if (this.#bash.pid !== undefined) endGroup(this.#bash.pid)
    await this.#closed
  }
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All of them have ended.
  }
}
