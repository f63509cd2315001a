import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { COMPILE_CACHE } from '../../scripts/node-options.ts'
import type { Io } from '../../services/cli/io.ts'
import { runProgram } from '../../services/cli/program.ts'
import { useTempFolder } from './temp-folder.ts'
import { Terminal } from './terminal.ts'

const MAIN = new URL('../../services/cli/main.ts', import.meta.url).pathname
const ROOT = new URL('../..', import.meta.url).pathname

const VERSION = '0.0.0'
const ignore = () => () => {}
const NO_SIGNALS = {
  onInterrupt: ignore,
  onTerminate: ignore,
  onCrash: ignore,
  interrupt: () => {},
  root: ROOT,
  nodePath: process.execPath,
} satisfies Partial<Io>

export type AeResult = { code: number | null; out: string; err: string }

export type AeOptions = { env?: Record<string, string>; input?: string; cwd?: string }

/** The command line against one server, with a home of its own, so that no profile of this machine counts. */
export class Ae {
  readonly #env: Record<string, string>
  readonly #terminals: Terminal[] = []

  constructor(url: string, home: string) {
    this.#env = { AE_URL: url, HOME: home, XDG_CONFIG_HOME: `${home}/.config`, LANG: 'C.UTF-8' }
  }

  /** Runs a command to its end in this process, as in pipes: nearly all of the CPU time of a process of its own would be its start. */
  async run(args: readonly string[], { input = '', env = {}, cwd = ROOT }: AeOptions = {}): Promise<AeResult> {
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
    const [out, err] = [text(stdout), text(stderr)]
    stdin.end(input)
    const io = { stdin, stdout, stderr, env: { ...this.#env, ...env }, cwd, ...NO_SIGNALS } as unknown as Io
    const code = await runProgram(io, args, VERSION).finally(() => {
      for (const stream of [stdout, stderr]) stream.end()
    })
    return { code, out: await out, err: await err }
  }

  /** The same in a process of its own, for what its pipes and its exit code are about. */
  async runProcess(args: readonly string[], { input = '', ...options }: AeOptions = {}): Promise<AeResult> {
    const { child, out, err, exited } = this.start(args, options)
    child.stdin.end(input)
    return { code: await exited, out: await out, err: await err }
  }

  /** Starts a command in pipes. */
  start(args: readonly string[], { env = {}, cwd }: Omit<AeOptions, 'input'> = {}) {
    const child = spawn(process.execPath, [MAIN, ...args], {
      env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: COMPILE_CACHE, ...this.#env, ...env },
      stdio: 'pipe',
      ...(cwd !== undefined && { cwd }),
    })
    const exited = once(child, 'exit').then(([code]) => code as number | null)
    return { child, exited, out: text(child.stdout), err: text(child.stderr) }
  }

  /** Starts a command in a terminal. */
  terminal(
    args: readonly string[],
    { env = {}, columns = 80 }: { env?: Record<string, string>; columns?: number } = {},
  ): Terminal {
    const terminal = new Terminal([process.execPath, MAIN, ...args], { ...this.#env, ...env }, { columns })
    this.#terminals.push(terminal)
    return terminal
  }

  /** Ends the terminals that a failed test has left. */
  async close(): Promise<void> {
    for (const terminal of this.#terminals.splice(0)) {
      terminal.kill()
      await terminal.exited
    }
  }
}

type Served = { url: string; close(): Promise<void> }

/** The parts of `useAe` for the tests: `server` was started for them, `home` is a folder of their own. */
export type AeSetup<Server> = { ae: Ae; home: string; server: Server }

/** The command line for the tests of a `describe`, against a server that is started before them and closed behind them. */
export function useAe<Server extends Served>(start: () => Promise<Server>): AeSetup<Server> {
  const setup = {} as AeSetup<Server>
  const home = useTempFolder()
  before(async () => {
    setup.home = home.path
    setup.server = await start()
    setup.ae = new Ae(setup.server.url, setup.home)
  })
  afterEach(() => setup.ae?.close())
  after(() => setup.server?.close())
  return setup
}
