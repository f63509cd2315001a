import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Skill } from './skill.ts'

const FILE = 'SKILL.md'
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/
const MAX_NAME = 64
const MAX_DESCRIPTION = 1_024
const MAX_BODY_BYTES = 256 * 1024
const MAX_FILES = 1_000
const MAX_BYTES = 20 * 1024 * 1024

/**
 * Reads the skills in SKILLS_DIR: folders in the open Agent Skills format (`NAME/SKILL.md`: front matter with name and
 * description, then the instructions). A malformed skill is left out; `problems` names it and the reason.
 */
export async function loadSkills(dir: string): Promise<{ skills: Skill[]; problems: string[] }> {
  const names = await foldersIn(dir)
  if (!names)
    return { skills: [], problems: [`SKILLS_DIR ${dir} is not a folder that can be read: no skill is available`] }
  const skills: Skill[] = []
  const problems: string[] = []
  for (const name of names) {
    try {
      skills.push(await loadSkill(join(dir, name), name))
    } catch (cause) {
      const reason = cause instanceof MalformedSkill ? cause.message : 'it cannot be read'
      problems.push(`the skill ${name} is left out: ${reason}`)
    }
  }
  return { skills, problems }
}

class MalformedSkill extends Error {}

async function foldersIn(dir: string): Promise<string[] | undefined> {
  try {
    const entries = await readdir(dir, { withFileTypes: true })
    return entries.flatMap((entry) => (entry.isDirectory() && !entry.name.startsWith('.') ? [entry.name] : [])).sort()
  } catch {
    return undefined
  }
}

async function loadSkill(folder: string, folderName: string): Promise<Skill> {
  await assertSize(folder)
  const text = await readText(join(folder, FILE))
  const [, front, body = ''] = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n([\s\S]*))?$/.exec(text) ?? []
  if (front === undefined) throw new MalformedSkill(`${FILE} does not begin with front matter between two lines of ---`)
  const { name, description } = parseFrontMatter(front)
  if (typeof name !== 'string' || name.length > MAX_NAME || !NAME.test(name)) {
    throw new MalformedSkill('its name must consist of lower-case letters, digits and single hyphens')
  }
  if (name !== folderName) throw new MalformedSkill(`its name ${name} differs from the name of its folder`)
  if (typeof description !== 'string' || description.trim() === '' || description.length > MAX_DESCRIPTION) {
    throw new MalformedSkill(`its description must be a text of 1 to ${MAX_DESCRIPTION} characters`)
  }
  if (body.trim() === '') throw new MalformedSkill('it has no instructions after the front matter')
  return { name, description: description.trim(), instructions: body.trim(), folder }
}

function parseFrontMatter(front: string): Record<string, unknown> {
  try {
    const value: unknown = parse(front, { maxAliasCount: 10 })
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // Reported below.
  }
  throw new MalformedSkill('its front matter is not a YAML mapping')
}

async function readText(path: string): Promise<string> {
  const stats = await lstat(path).catch(() => undefined)
  if (!stats?.isFile()) throw new MalformedSkill(`there is no file ${FILE}`)
  if (stats.size > MAX_BODY_BYTES) throw new MalformedSkill(`${FILE} is larger than ${MAX_BODY_BYTES} bytes`)
  return readFile(path, 'utf8')
}

/** Limits the size, because the files of a skill are copied into the workspaces of the runs that use it. */
async function assertSize(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  if (entries.length > MAX_FILES) throw new MalformedSkill(`it has more than ${MAX_FILES} files`)
  let bytes = 0
  for (const entry of entries) if (entry.isFile()) bytes += (await lstat(join(entry.parentPath, entry.name))).size
  if (bytes > MAX_BYTES) throw new MalformedSkill(`its files have more than ${MAX_BYTES} bytes together`)
}
