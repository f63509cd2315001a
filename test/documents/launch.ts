import { ROOT } from '../deploy/files.ts'
import { Child } from '../support/child.ts'

/** A command that starts a server, with the variables before it. */
const LAUNCH = /^((?:[A-Z_]+=\S+ )*)(scripts\/(?:start|cluster)|npx node test\/conformance\/main\.ts)(?: ([^#\n]*))?$/
const READY = /"msg":"listening"|The cluster is ready|stands for the base address/

export const isLaunch = (command: string): boolean => LAUNCH.test(withoutRemark(command))

/** The arguments of a command that starts a server. */
export const argsOf = (command: string): string[] => words(LAUNCH.exec(withoutRemark(command))?.[3] ?? '')

/** Starts a server as a line of a document does, with free ports and a folder of its own. The caller ends it. */
export function launch(command: string, dir: string): Child {
  const [, variables = '', program = '', args = ''] = LAUNCH.exec(withoutRemark(command)) ?? []
  const given = words(variables).map((each) => each.split('=', 2) as [string, string])
  const own = { HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', DATA_DIR: dir, DRAIN_SECS: '1' }
  const env = { ...home(), ...Object.fromEntries(given), ...own }
  const rest = words(args.replace(/--port \d+/, '--port 0'))
  const file = ROOT + program.replace('npx node ', '')
  return program.startsWith('npx ') ? new Child(process.execPath, [file, ...rest], env) : new Child(file, rest, env)
}

/** Resolves with the address of a server that was launched, once it takes requests. */
export async function addressOf(server: Child): Promise<string> {
  return /http[^\s"]+/.exec(await server.line(READY))?.[0] ?? ''
}

/** The variables of this process by which a script finds what it has installed. */
export const home = (): Record<string, string> =>
  Object.fromEntries(
    ['HOME', 'XDG_CACHE_HOME'].flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
  )

const withoutRemark = (command: string): string => command.replace(/\s+#.*/, '')

const words = (text: string): string[] => text.trim().split(/\s+/).filter(Boolean)
