import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Check, type Finding, reasonOf } from './finding.ts'

/** A gateway accepts 16,384 connections, and opens files and connections of its own. */
const MIN_OPEN_FILES = 20_000
const OTHERS = 0o007
const MIN_FREE_SHARE = 0.05

/** The folders of workspaces and data: this user can change them, others cannot read them, and the disk has room. */
export const checkFolders: Check = async ({ config: { dataDir, workspaceDir } }) => {
  const findings = await Promise.all([
    checkFolder('DATA_DIR', dataDir),
    ...(workspaceDir.startsWith(dataDir) ? [] : [checkFolder('WORKSPACE_DIR', workspaceDir)]),
  ])
  return findings.flat()
}

async function checkFolder(name: string, folder: string): Promise<Finding[]> {
  const probe = join(folder, `.doctor-${randomUUID()}`)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeFile(probe, '')
    await rename(probe, `${probe}.renamed`)
    await rm(`${probe}.renamed`)
  } catch (cause) {
    const cure = `run \`chown -R USER ${folder}\` with the user of the processes, or mount it writable`
    return [{ problem: `this user cannot change files in ${name}: ${reasonOf(cause)}`, cure }]
  }
  const { mode } = await stat(folder)
  const { bavail, blocks } = await statfs(folder)
  const findings: Finding[] = []
  if ((mode & OTHERS) !== 0)
    findings.push({
      problem: `other users of this machine can enter ${name} (mode ${(mode & 0o777).toString(8)}), which holds tenants' files`,
      cure: `run \`chmod 700 ${folder}\``,
    })
  if (bavail < blocks * MIN_FREE_SHARE)
    findings.push({
      problem: `the disk of ${name} is more than 95 % full`,
      cure: 'give it room: uploads and tools then fail',
    })
  return findings
}

/** The limit of this process, which is that of others that the same user or service manager starts. */
export const checkOpenFiles: Check = async () => {
  const text = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const soft = Number(/^Max open files\s+(\d+)/m.exec(text)?.[1] ?? Number.POSITIVE_INFINITY)
  if (soft >= MIN_OPEN_FILES) return []
  return [
    {
      problem: `a process may open ${soft} files, so a gateway refuses connections long before its 16,384`,
      cure: 'raise the limit to 65536 (systemd: LimitNOFILE=, Docker: ulimits, shell: ulimit -n)',
    },
  ]
}
