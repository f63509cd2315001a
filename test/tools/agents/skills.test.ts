import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { loadSkills } from '../../../shared/tools/agents/load-skills.ts'
import { createSkillTool } from '../../../shared/tools/agents/skill.ts'
import type { AgentTask, SubAgents } from '../../../shared/tools/port.ts'
import { contextOf, makeFolder, removeFolders } from '../setup.ts'

const GOOD = '---\nname: pdf\ndescription: Reads PDFs.\nlicense: MIT\n---\n# How\nSee forms/a.md.\n'

async function folderWith(skills: Record<string, string>): Promise<string> {
  const dir = await makeFolder()
  for (const [name, text] of Object.entries(skills)) {
    await mkdir(join(dir, name))
    await writeFile(join(dir, name, 'SKILL.md'), text)
  }
  return dir
}

describe('skills', () => {
  afterEach(removeFolders)

  it('D1.3 SKILLS_DIR: a folder whose SKILL.md has front matter and instructions is a skill', async () => {
    const dir = await folderWith({
      pdf: GOOD,
      'two-words': '---\r\nname: two-words\r\ndescription: "x: y"\r\n---\r\nDo it.',
    })
    const { skills, problems } = await loadSkills(dir)
    expect(problems).to.deep.equal([])
    expect(skills.map(({ name, description, instructions }) => [name, description, instructions])).to.deep.equal([
      ['pdf', 'Reads PDFs.', '# How\nSee forms/a.md.'],
      ['two-words', 'x: y', 'Do it.'],
    ])
  })

  const MALFORMED: Record<string, [text: string, problem: RegExp]> = {
    bare: ['# no front matter', /does not begin with front matter/],
    open: ['---\nname: open\ndescription: d\n', /does not begin with front matter/],
    yaml: ['---\nname: [\n---\nx', /not a YAML mapping/],
    list: ['---\n- a\n---\nx', /must consist of lower-case letters/],
    other: ['---\nname: another\ndescription: d\n---\nx', /differs from the name of its folder/],
    Upper: ['---\nname: Upper\ndescription: d\n---\nx', /must consist of lower-case letters/],
    nodesc: ['---\nname: nodesc\n---\nx', /description must be a text/],
    empty: ['---\nname: empty\ndescription: d\n---\n \n', /no instructions/],
    long: [`---\nname: long\ndescription: ${'d'.repeat(1_025)}\n---\nx`, /1 to 1024 characters/],
  }
  for (const [name, [text, problem]] of Object.entries(MALFORMED)) {
    it(`a malformed skill is left out and reported, the others stay: ${name}`, async () => {
      const { skills, problems } = await loadSkills(await folderWith({ [name]: text, pdf: GOOD }))
      expect(skills.map((skill) => skill.name)).to.deep.equal(['pdf'])
      expect(problems).to.have.length(1)
      expect(problems[0]).to.include(`the skill ${name} is left out`).and.match(problem)
    })
  }

  it('a folder without SKILL.md and a missing SKILLS_DIR are reported', async () => {
    const dir = await folderWith({})
    await mkdir(join(dir, 'hollow'))
    expect((await loadSkills(dir)).problems).to.deep.equal(['the skill hollow is left out: there is no file SKILL.md'])
    expect((await loadSkills(join(dir, 'nowhere'))).problems[0]).to.match(/not a folder that can be read/)
  })

  it('D5.3: Skill gives a sub-agent the instructions and copies the skill’s files, without links, into the workspace', async () => {
    const dir = await folderWith({ pdf: GOOD })
    await mkdir(join(dir, 'pdf', 'forms'))
    await writeFile(join(dir, 'pdf', 'forms', 'a.md'), 'form a')
    await symlink('/etc/passwd', join(dir, 'pdf', 'link'))
    const tasks: AgentTask[] = []
    const run: SubAgents['run'] = async (task) => {
      tasks.push(task)
      return { status: 'completed', result: 'read' }
    }
    const workspace = join(await makeFolder(), 'ws')
    const tool = createSkillTool((await loadSkills(dir)).skills)
    const context = contextOf(workspace, { agents: { depth: 0, refusal: () => undefined, run } })
    expect(await tool.run({ name: 'pdf', input: 'x.pdf' }, context)).to.deep.equal({ output: 'read', isError: false })
    expect(tasks[0]).to.include({ prompt: 'x.pdf', description: 'Skill pdf' })
    expect(tasks[0]?.system).to.include('# How').and.include('.skills/pdf/')
    expect(await readFile(join(workspace, '.skills/pdf/forms/a.md'), 'utf8')).to.equal('form a')
    const link = await readFile(join(workspace, '.skills/pdf/link')).catch(({ code }: NodeJS.ErrnoException) => code)
    expect(link).to.equal('ENOENT')
  })

  it('the files are whole before the sub-agent starts, however many calls prepare them at the same time', async () => {
    const dir = await folderWith({ pdf: GOOD })
    for (let i = 0; i < 20; i++) await writeFile(join(dir, 'pdf', `${i}.md`), 'x'.repeat(10_000))
    const tool = createSkillTool((await loadSkills(dir)).skills)
    for (let round = 0; round < 10; round++) {
      const workspace = join(await makeFolder(), 'ws')
      const run: SubAgents['run'] = async () => {
        const files = await readdir(join(workspace, '.skills', 'pdf'))
        return { status: 'completed', result: String(files.length) }
      }
      const context = contextOf(workspace, { agents: { depth: 0, refusal: () => undefined, run } })
      const outcomes = await Promise.all([1, 2, 3].map(() => tool.run({ name: 'pdf' }, context)))
      expect(outcomes.map(({ output }) => output)).to.deep.equal(['21', '21', '21'])
      expect(await readdir(join(workspace, '.skills'))).to.deep.equal(['pdf'])
    }
  })

  it('the files are prepared once in a workspace: changes of the run stay', async () => {
    const dir = await folderWith({ pdf: GOOD })
    const tool = createSkillTool((await loadSkills(dir)).skills)
    const workspace = await makeFolder()
    const run: SubAgents['run'] = async () => ({ status: 'completed', result: 'ok' })
    const context = contextOf(workspace, { agents: { depth: 0, refusal: () => undefined, run } })
    await tool.run({ name: 'pdf' }, context)
    await writeFile(join(workspace, '.skills', 'pdf', 'SKILL.md'), 'mine')
    await tool.run({ name: 'pdf' }, context)
    expect(await readFile(join(workspace, '.skills', 'pdf', 'SKILL.md'), 'utf8')).to.equal('mine')
  })

  it('an unknown skill is refused with its name and the list of existing skills', async () => {
    const tool = createSkillTool((await loadSkills(await folderWith({ pdf: GOOD }))).skills)
    expect(tool.problemWith?.({ name: 'pfd' })).to.equal('There is no skill pfd. The skills are: pdf.')
    expect(tool.description).to.include('- pdf: Reads PDFs.')
    expect(createSkillTool([]).problemWith?.({ name: 'pdf' })).to.equal('No skills are installed on this server.')
  })
})
