import { readdir, readFile } from 'node:fs/promises'

const PAGE_BYTES = 4096

/** The resident memory of each process group, by its leader; empty where there is no /proc. */
export async function groupMemory(): Promise<Map<number, number>> {
  const groups = new Map<number, number>()
  const names = await readdir('/proc').catch(() => [])
  for (const name of names) {
    if (!/^\d+$/.test(name)) continue
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') // Empty if the process has ended meanwhile.
    // proc_pid_stat(5): the fields after the name, which may contain blanks. Of all fields, the 5th is the process group, and
    // the 24th the number of resident pages.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const group = Number(fields[2])
    groups.set(group, (groups.get(group) ?? 0) + Number(fields[21]) * PAGE_BYTES)
  }
  return groups
}
