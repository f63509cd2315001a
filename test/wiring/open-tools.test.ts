import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openTools } from '../../services/wiring/open-tools.ts'
import { useOpening } from './opening.ts'

describe('the tools of a process', () => {
  const opening = useOpening()
  const open = async (env: Record<string, string> = {}) => {
    const tools = await openTools(opening.settings(env).tools, opening.log)
    opening.closing(() => tools.close())
    return tools
  }
  const namesOf = async (env?: Record<string, string>) => (await open(env)).toolBox.tools.map(({ name }) => name)

  it('D5.1: are the files, the searches, the web, the agents, the skills, the memory and the plan; Bash only where it is enabled', async () => {
    const usual = ['Read', 'Write', 'Edit', 'Glob', 'Grep', 'WebFetch', 'TodoWrite', 'Agent', 'Team', 'Skill', 'Dream']
    expect(await namesOf())
      .to.include.members([...usual, 'ExitPlanMode'])
      .and.not.include('Bash')
    expect(opening.lines).to.deep.equal([])
  })

  it('Bash is not offered while the programs that it starts could read a secret, and the log says which', async () => {
    await writeFile(join(opening.dir, 'master.key'), 'k'.repeat(43))
    const names = await namesOf({ ENABLE_BASH: 'true', MASTER_KEY_FILE: join(opening.dir, 'master.key') })
    expect(names).not.to.include('Bash')
    expect(opening.lines.join())
      .to.include('Bash and MCP servers over stdio are not offered')
      .and.include(join(opening.dir, 'master.key'))
  })

  it('D1.3 TOOL_PERMISSIONS, PLAN_PERMISSIONS: a policy of a tool that does not exist stops the start, with all problems at once', async () => {
    const settings = { TOOL_PERMISSIONS: '{"Wirte": "allow"}', PLAN_PERMISSIONS: '{"Reda": "allow"}' }
    const refused = await open(settings).catch((cause: unknown) => String(cause))
    expect(refused).to.match(/Wirte[^]*PLAN_PERMISSIONS[^]*Reda/)
  })

  it('D1.3 SKILLS_DIR: a skill that cannot be read is left out with a warning', async () => {
    await mkdir(join(opening.dir, 'skills', 'sail'), { recursive: true })
    await writeFile(join(opening.dir, 'skills', 'sail', 'SKILL.md'), 'no head')
    await open({ SKILLS_DIR: join(opening.dir, 'skills') })
    expect(opening.lines.join()).to.include('sail')
  })

  it('D5.2: are there before an MCP server that hangs at its start, which is starting', async () => {
    const mcpServers = { slow: { command: 'sleep', args: ['1000'], color: 'red' } }
    await writeFile(join(opening.dir, 'mcp.json'), JSON.stringify({ mcpServers }))
    const { toolBox } = await open({ MCP_CONFIG: join(opening.dir, 'mcp.json'), DATA_DIR: opening.dir })
    expect(toolBox.find('Read')).not.to.equal(undefined)
    expect(toolBox.servers?.()).to.deep.equal([{ name: 'slow', state: 'starting' }])
    expect(opening.lines.join()).to.include('no effect: color')
  })

  it('D1.3 MCP_CONFIG: a file that is wrong is a mistake of the configuration; it may refer to variables of the environment', async () => {
    const mcpServers = { a: { command: 'x', env: { ONE: '${SET_TOKEN}', TWO: '${UNSET_TOKEN}' } } }
    await writeFile(join(opening.dir, 'mcp.json'), JSON.stringify({ mcpServers }))
    const settings = { MCP_CONFIG: join(opening.dir, 'mcp.json'), SET_TOKEN: 'token-1' }
    const refused = await open(settings).catch((cause: unknown) => cause)
    expect(refused).to.be.instanceOf(Error).and.include({ name: 'ConfigError' })
    expect(String(refused)).to.include('UNSET_TOKEN, which is not set').and.not.include('needs the variable SET_TOKEN')
  })
})
