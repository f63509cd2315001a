import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Skill } from './skill.ts'
import { listSkillFiles, MalformedSkill } from './skill-files.ts'

const FILE = 'SKILL.md'
const FILES = [FILE, 'skill.md']
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/
const MAX_NAME = 64
const MAX_DESCRIPTION = 1_024
const MAX_BODY_BYTES = 256 * 1024

/**
 * Reads the skills in SKILLS_DIR: folders, or links to folders, in the open Agent Skills format (`NAME/SKILL.md`: front matter
 * with name and description, then the instructions). A malformed skill is left out; `problems` names it and the reason.
 */
export async function loadSkills(dir: string): Promise<{ skills: Skill[]; problems: string[] }> {
  const names = await foldersIn(dir)
  if (!names)
    return { skills: [], problems: [`SKILLS_DIR ${dir} is not a folder that can be read: no skill is available`] }
  const skills: Skill[] = []
  const problems: string[] = []
  for (const name of names) {
    try {
      const folder = join(dir, name)
      const { files, problems: links } = await listSkillFiles(folder)
      problems.push(...links.map((link) => `in the skill ${name}, ${link}`))
      skills.push(await loadSkill(folder, name, files))
    } catch (cause) {
      const reason = cause instanceof MalformedSkill ? cause.message : 'it cannot be read'
      problems.push(`the skill ${name} is left out: ${reason}`)
    }
  }
  return { skills, problems }
}

/** The names of the folders in `dir`, and of entries that cannot be read, such as a link that leads nowhere. */
async function foldersIn(dir: string): Promise<string[] | undefined> {
  try {
    const names = (await readdir(dir)).filter((name) => !name.startsWith('.')).sort()
    const areFolders = await Promise.all(names.map((name) => isFolder(join(dir, name)).catch(() => true)))
    return names.filter((_, index) => areFolders[index])
  } catch {
    return undefined
  }
}

const isFolder = async (path: string): Promise<boolean> => (await stat(path)).isDirectory()

async function loadSkill(folder: string, folderName: string, files: readonly string[]): Promise<Skill> {
  const text = await readInstructions(folder, files)
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
    // The missing file is reported below.
  }
  throw new MalformedSkill('its front matter is not a YAML mapping')
}

async function readInstructions(folder: string, files: readonly string[]): Promise<string> {
  const file = FILES.find((name) => files.includes(name))
  if (file === undefined) throw new MalformedSkill(`there is no file ${FILE}`)
  const { size } = await stat(join(folder, file))
  if (size > MAX_BODY_BYTES) throw new MalformedSkill(`${FILE} is larger than ${MAX_BODY_BYTES} bytes`)
  return readFile(join(folder, file), 'utf8')
}
