import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Io } from '../../services/cli/io.ts'
import { runProgram } from '../../services/cli/program.ts'
import { ROOT } from '../deploy/files.ts'

const ignore = () => () => {}
const REST = {
  onInterrupt: ignore,
  onTerminate: ignore,
  onCrash: ignore,
  interrupt: ignore,
  nodePath: process.execPath,
}

/**
 * The command line for a shell, run by this process on the streams of the shell: a document has dozens of its commands, and nearly all of the CPU
 * time of a process of its own would be its start. `ae serve`, which gets signals, is started as what PATH has.
 */
export class AeHere implements AsyncDisposable {
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<AeHere> {
    const server = createServer((req, res) => void run(req).then((code) => res.end(String(code))))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return new AeHere(server)
  }

  /** What a shell executes to have it. Its output goes through pipes, which this process can open: those of Node are sockets. */
  get definition(): string {
    const { port } = this.#server.address() as AddressInfo
    return `exec > >(cat) 2> >(cat >&2)
ae() {
  if [ "$1" = serve ]; then exec "$(type -P ae)" "$@"; fi
  local pid=$BASHPID code
  code=$({ printf '%s\\0' "$pid" "$PWD" "$#" "$@"; env -0; } | curl --data-binary @- http://127.0.0.1:${port})
  return "$code"
}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

async function run(req: IncomingMessage): Promise<number> {
  const [pid, cwd = '', count = '0', ...rest] = (await buffer(req)).toString().split('\0')
  const args = rest.slice(0, Number(count))
  const env = Object.fromEntries(rest.slice(args.length).map((each) => /^([^=]*)=?([^]*)$/.exec(each)?.slice(1) ?? []))
  const stdin = createReadStream(`/proc/${pid}/fd/0`)
  const outputs = [1, 2].map((fd) => createWriteStream(`/proc/${pid}/fd/${fd}`, { flags: 'a' }))
  for (const stream of outputs) stream.on('error', () => {}) // The reader of a pipe may have left, as `head` does.
  stdin.on('error', () => {})
  const [stdout, stderr] = outputs
  const io = { stdin, stdout, stderr, env, cwd, root: ROOT, ...REST } as unknown as Io
  const code = await runProgram(io, args, '0.0.0')
  stdin.destroy()
  await Promise.all(outputs.map((stream) => new Promise((resolve) => stream.end(resolve))))
  return code
}
