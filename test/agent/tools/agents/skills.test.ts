import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { expect } from 'chai'
import { loadSkills } from '../../../../shared/agent/tools/agents/load-skills.ts'
import { createSkillTool, type Skill } from '../../../../shared/agent/tools/agents/skill.ts'
import type { AgentTask, SubAgents } from '../../../../shared/agent/tools/port.ts'
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

/** Uses a skill in a new workspace and returns the files that it gets there. */
async function copiedFiles(skills: readonly Skill[], name: string): Promise<Record<string, string>> {
  const workspace = join(await makeFolder(), 'ws')
  const run: SubAgents['run'] = async () => ({ status: 'completed', result: 'ok' })
  await createSkillTool(skills).run(
    { name },
    contextOf(workspace, { agents: { depth: 0, refusal: () => undefined, run } }),
  )
  const folder = join(workspace, '.skills', name)
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')))
  return Object.fromEntries(files.map((file, index) => [relative(folder, file), texts[index] ?? '']))
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

  it('D5.3: Skill gives a sub-agent the instructions and copies the skill’s files, without those outside its folder, into the workspace', async () => {
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

  it('a skill from a mounted ConfigMap, where each file is a link, is read and copied, and so is a linked folder', async () => {
    const dir = await makeFolder()
    const own = join(dir, 'pdf') // One ConfigMap for the skill: its folder is the mount.
    await mkdir(join(own, '..2026_01_01', 'forms'), { recursive: true })
    await writeFile(join(own, '..2026_01_01', 'skill.md'), GOOD)
    await writeFile(join(own, '..2026_01_01', 'forms', 'a.md'), 'form a')
    await symlink('..2026_01_01', join(own, '..data'))
    await symlink('..data/skill.md', join(own, 'skill.md'))
    await symlink('..data/forms', join(own, 'forms'))
    // One ConfigMap with paths for all skills: SKILLS_DIR is the mount.
    await mkdir(join(dir, '..2026_01_01', 'words'), { recursive: true })
    await writeFile(join(dir, '..2026_01_01', 'words', 'SKILL.md'), GOOD.replace('name: pdf', 'name: words'))
    await symlink('..2026_01_01', join(dir, '..data'))
    await symlink('..data/words', join(dir, 'words'))
    const { skills, problems } = await loadSkills(dir)
    expect(problems).to.deep.equal([])
    expect(skills.map(({ name }) => name)).to.deep.equal(['pdf', 'words'])
    expect(await copiedFiles(skills, 'pdf')).to.deep.equal({ 'forms/a.md': 'form a', 'skill.md': GOOD })
    expect(Object.keys(await copiedFiles(skills, 'words'))).to.deep.equal(['SKILL.md'])
  })

  it('links that lead out of a skill, nowhere or in a circle are left out and reported, and the skill stays', async () => {
    const dir = await folderWith({ pdf: GOOD, away: '' })
    const inPdf = (name: string) => join(dir, 'pdf', name)
    await mkdir(inPdf('forms'))
    for (const [target, name] of [
      ['/etc', 'etc'],
      ['/etc/passwd', 'forms/passwd'],
      ['nowhere', 'gone'],
      ['..', 'forms/circle'],
      ['self', 'self'],
      ['../pdf-else/SKILL.md', 'neighbour'],
    ] as const)
      await symlink(target, inPdf(name))
    await mkdir(join(dir, 'pdf-else'))
    await writeFile(join(dir, 'pdf-else', 'SKILL.md'), 'x')
    await rm(join(dir, 'away', 'SKILL.md'))
    await symlink('/etc/passwd', join(dir, 'away', 'SKILL.md'))
    await symlink('nowhere', join(dir, 'broken'))
    await symlink('circle', join(dir, 'circle'))
    const { skills, problems } = await loadSkills(dir)
    expect(problems).to.deep.equal([
      "in the skill away, SKILL.md is left out: it leads out of the skill's folder",
      'the skill away is left out: there is no file SKILL.md',
      'the skill broken is left out: it cannot be read',
      'the skill circle is left out: it cannot be read',
      "in the skill pdf, etc is left out: it leads out of the skill's folder",
      'in the skill pdf, gone is left out: it leads nowhere',
      "in the skill pdf, neighbour is left out: it leads out of the skill's folder",
      'in the skill pdf, self is left out: it leads nowhere',
      'in the skill pdf, forms/circle is left out: it leads back to a folder that it is in',
      "in the skill pdf, forms/passwd is left out: it leads out of the skill's folder",
      'the skill pdf-else is left out: SKILL.md does not begin with front matter between two lines of ---',
    ])
    expect(Object.keys(await copiedFiles(skills, 'pdf'))).to.deep.equal(['SKILL.md'])
  })

  it('a skill of more than 1,000 files, and one whose links multiply, is left out', async () => {
    const dir = await folderWith({ pdf: GOOD })
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k']) await mkdir(join(dir, 'pdf', name))
    for (const [from, to] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg', 'gh', 'hi', 'ij', 'jk'])
      for (const n of [1, 2]) await symlink(`../${to}`, join(dir, 'pdf', from ?? '', `${n}`))
    expect((await loadSkills(dir)).problems).to.deep.equal(['the skill pdf is left out: it has more than 1000 files'])
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
