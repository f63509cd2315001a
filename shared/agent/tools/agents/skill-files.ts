import { readdir, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'

const MAX_FILES = 1_000
const MAX_BYTES = 20 * 1024 * 1024

/** Thrown when a skill cannot be used. The message is the end of a sentence. */
export class MalformedSkill extends Error {}

/** `files` are paths in the skill's folder. `problems` names each link that is left out, and the reason. */
export type SkillFiles = { files: string[]; problems: string[] }

type Folder = { path: string; realPath: string; above: readonly string[] }

/**
 * Lists the files of a skill, which are copied into the workspaces of the runs that use it. Links are followed inside the skill's
 * own folder, because in a mounted ConfigMap every file is a link: `SKILL.md` leads to `..data/SKILL.md`, and `..data` to a folder
 * with the date in its name. Throws `MalformedSkill` when there are too many files.
 */
export async function listSkillFiles(folder: string): Promise<SkillFiles> {
  const root: Folder = { path: '', realPath: await realpath(folder), above: [] }
  const found: SkillFiles = { files: [], problems: [] }
  const folders = [root]
  let [entries, bytes] = [0, 0]
  for (const each of folders) {
    for (const name of (await readdir(join(folder, each.path))).filter((entry) => !isConfigMapFolder(entry)).sort()) {
      if (++entries > MAX_FILES) throw new MalformedSkill(`it has more than ${MAX_FILES} files`)
      const path = join(each.path, name)
      const target = await targetOf(join(folder, path), root.realPath)
      if ('problem' in target) found.problems.push(`${path} is left out: ${target.problem}`)
      else if (target.kind === 'file') {
        found.files.push(path)
        bytes += target.bytes
      } else if ([each.realPath, ...each.above].includes(target.realPath))
        found.problems.push(`${path} is left out: it leads back to a folder that it is in`)
      else folders.push({ path, realPath: target.realPath, above: [each.realPath, ...each.above] })
    }
  }
  if (bytes > MAX_BYTES) throw new MalformedSkill(`its files have more than ${MAX_BYTES} bytes together`)
  return found
}

const isConfigMapFolder = (name: string): boolean => name.startsWith('..')

type Target = { kind: 'file' | 'folder'; realPath: string; bytes: number } | { problem: string }

async function targetOf(path: string, root: string): Promise<Target> {
  try {
    const realPath = await realpath(path)
    if (!`${realPath}${sep}`.startsWith(`${root}${sep}`)) return { problem: "it leads out of the skill's folder" }
    const stats = await stat(realPath)
    if (stats.isDirectory()) return { kind: 'folder', realPath, bytes: 0 }
    return stats.isFile() ? { kind: 'file', realPath, bytes: stats.size } : { problem: 'it is not a file' }
  } catch {
    return { problem: 'it leads nowhere' }
  }
}
