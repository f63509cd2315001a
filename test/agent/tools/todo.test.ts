import { expect } from 'chai'
import { createTodoTool } from '../../../shared/agent/tools/todo.ts'
import { contextOf } from './setup.ts'

describe('TodoWrite', () => {
  it('says in the permission request what it does', () => {
    expect(createTodoTool().describe({})).to.equal('Write down the list of things to do.')
  })

  it('D5.1: takes {todos:[{content, status}]} and needs no permission', () => {
    const { inputSchema, defaultPolicy } = createTodoTool()
    expect([defaultPolicy, inputSchema['required']]).to.deep.equal(['allow', ['todos']])
  })

  it('returns the list and reports which part of it is done', async () => {
    const reports: unknown[] = []
    const todos = [
      { content: 'dig', status: 'completed' },
      { content: 'plant', status: 'in_progress' },
      { content: 'water', status: 'pending' },
      { content: 'wait', status: 'pending' },
    ]
    const report = (...args: unknown[]) => void reports.push(args)
    const outcome = await createTodoTool().run({ todos }, contextOf('/nowhere', { report }))
    expect(outcome).to.deep.equal({ output: '[x] dig\n[>] plant\n[ ] water\n[ ] wait', isError: false })
    expect(reports).to.deep.equal([[0.25, '1 of 4 done']])
  })

  it('accepts an empty list', async () => {
    const report = () => expect.fail('it reported the progress of nothing')
    const outcome = await createTodoTool().run({ todos: [] }, contextOf('/nowhere', { report }))
    expect(outcome).to.deep.equal({ output: 'The list is empty.', isError: false })
  })
})
