import { DatabaseSync } from 'node:sqlite'
import { expect } from 'chai'
import type { CollectionSpec } from '../../../../shared/platform/store/port.ts'
import { createTables } from '../../../../shared/platform/store/sqlite/sqlite.ts'

const NOTES: CollectionSpec = { name: 'notes', key: ['id'] }

const sqlOf = (db: DatabaseSync) => db.prepare('SELECT name, sql FROM sqlite_master ORDER BY name').all()

describe('the tables of collections', () => {
  it('are all created, or none when one cannot be', () => {
    const db = new DatabaseSync(':memory:')
    expect(() => createTables(db, [NOTES, { name: 'SELECT', key: ['id'] }])).to.throw('not allowed as a name')
    expect(sqlOf(db)).to.deep.equal([])
    createTables(db, [NOTES])
    expect(sqlOf(db)).to.have.length(2)
    db.close()
  })

  it('get the fields and the bodies of a later version, and stay as they are when there are none', () => {
    const db = new DatabaseSync(':memory:')
    createTables(db, [NOTES])
    db.exec(`INSERT INTO notes (tenant, version, doc) VALUES ('acme', 1, '{"id":"a","owner":"anna"}')`)
    const later: CollectionSpec = { ...NOTES, filters: ['owner'], hasBody: true }
    createTables(db, [later])
    const note = { __proto__: null, id: 'a', owner: 'anna', body: null }
    expect(db.prepare('SELECT id, owner, body FROM notes').all()).to.deep.equal([note])
    const before = sqlOf(db)
    createTables(db, [later])
    expect(sqlOf(db)).to.deep.equal(before)
    db.close()
  })
})
