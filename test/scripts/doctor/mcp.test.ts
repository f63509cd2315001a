import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { checkMcp } from '../../../scripts/doctor/mcp.ts'
import { patientOf } from '../../../scripts/doctor/patient.ts'
import { useTempFolder } from '../../support/temp-folder.ts'

describe('npm run doctor with MCP_CONFIG', () => {
  const dir = useTempFolder()
  const OIDC = { OIDC_ISSUER: 'https://issuer.example.com', OIDC_AUDIENCE: 'api' }

  async function findings(mcpServers: object, env: Record<string, string> = {}) {
    const file = join(dir.path, 'mcp.json')
    await writeFile(file, JSON.stringify({ mcpServers }))
    return checkMcp(patientOf({ MCP_CONFIG: file, DATA_DIR: dir.path, ...env }))
  }

  const SERVERS = { own: { command: 'a' }, all: { command: 'b', scope: 'shared' }, far: { url: 'http://c/' } }

  it('D40: says which servers all share, and which the sessions of a tenant, which is no fault', async () => {
    const notes = (await findings({ ...SERVERS, each: { command: 'd', scope: 'session' } }, OIDC)).map(
      (each) => 'note' in each && each.note,
    )
    expect(notes).to.have.length(2)
    expect(notes[0]).to.match(/^shared by all tenants and sessions: all, far\./)
    expect(notes[1]).to.match(/^shared by the sessions of a tenant: own\./)
    const [alone] = await findings(SERVERS)
    expect(alone).to.have.property('note').that.includes('own, all, far')
  })

  it('a file that cannot be used is a fault, and a field without effect is named', async () => {
    expect(await findings({ a: {} }))
      .to.have.nested.property('[0].problem')
      .that.includes('mcpServers.a must have')
    const [unknown] = await findings({ a: { command: 'x', color: 'red' } })
    expect(unknown).to.have.property('note').that.includes('no effect: color')
  })
})
