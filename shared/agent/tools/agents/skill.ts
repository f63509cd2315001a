import { randomBytes } from 'node:crypto'
import { copyFile, lstat, mkdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createKeyedQueue } from '../../../kernel/async/keyed-queue.ts'
import { fail, type Tool } from '../port.ts'
import { makeWorkspace } from '../workspace/workspace.ts'
import { runAgent } from './agents.ts'
import { listSkillFiles } from './skill-files.ts'

/** A skill in the open Agent Skills format: instructions for one kind of task, and the folder with its files. */
export type Skill = { name: string; description: string; instructions: string; folder: string }

/** Creates `Skill` (D5.3): a sub-agent follows the skill's instructions, with a copy of the skill's files in the workspace. */
export function createSkillTool(skills: readonly Skill[]): Tool {
  const byName = new Map(skills.map((skill) => [skill.name, skill]))
  const names = [...byName.keys()].join(', ')
  const preparing = createKeyedQueue()
  return {
    name: 'Skill',
    description: descriptionFor(skills),
    inputSchema: {
      type: 'object',
      properties: {
        name: { type: 'string', maxLength: 64, description: "The skill's name." },
        input: { type: 'string', maxLength: 100_000, description: 'What the skill is to be applied to.' },
      },
      required: ['name'],
    },
    defaultPolicy: 'allow',
    usesFiles: true,
    isReadOnly: true,
    describe: (input) => `Use the skill ${String(input['name'])}`,
    problemWith({ name }) {
      if (byName.has(String(name))) return undefined
      return names === ''
        ? 'No skills are installed on this server.'
        : `There is no skill ${String(name)}. The skills are: ${names}.`
    },
    async run({ name, input }, context) {
      const skill = byName.get(String(name))
      if (!skill) return fail(`There is no skill ${String(name)}.`)
      await preparing.run(join(context.workspace, folderOf(skill)), () => copyFiles(skill, context.workspace))
      const prompt = typeof input === 'string' && input !== '' ? input : 'Carry out the skill.'
      return runAgent({ description: `Skill ${skill.name}`, prompt, system: systemOf(skill) }, context)
    },
  }
}

function descriptionFor(skills: readonly Skill[]): string {
  const items = skills.map(({ name, description }) => `- ${name}: ${description}`)
  const list = items.length > 0 ? `The skills are:\n${items.join('\n')}` : 'No skills are installed on this server.'
  return `Gives a sub-agent the instructions of a skill to follow, and returns its final answer. ${list}`
}

const folderOf = ({ name }: Skill) => `.skills/${name}`

const systemOf = (skill: Skill) =>
  `${skill.instructions}\n\n(You follow the skill ${skill.name}. The files that it mentions are in ${folderOf(skill)}/ in your workspace. Your caller reads only your last message.)`

/**
 * Copies the skill's files into the workspace, unless they are there, so that the file tools can read them. The finished copy is
 * moved into its place, so that no sub-agent sees a part of it. Leaves out links that lead out of the skill's folder.
 */
async function copyFiles(skill: Skill, workspace: string): Promise<void> {
  const target = join(workspace, folderOf(skill))
  if (await exists(target)) return
  await makeWorkspace(workspace)
  const copy = join(workspace, '.skills', `.${skill.name}-${randomBytes(6).toString('hex')}`)
  try {
    const { files } = await listSkillFiles(skill.folder)
    for (const file of files) {
      await mkdir(dirname(join(copy, file)), { recursive: true })
      await copyFile(join(skill.folder, file), join(copy, file))
    }
    await rename(copy, target)
  } catch (cause) {
    await rm(copy, { recursive: true, force: true })
    throw cause
  }
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )
