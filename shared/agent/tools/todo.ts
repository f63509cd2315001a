import { attempt } from './attempt.ts'
import { succeed, type Tool } from './port.ts'

type Todo = { content: string; status: 'pending' | 'in_progress' | 'completed' }

const MARKS: Record<Todo['status'], string> = { pending: '[ ]', in_progress: '[>]', completed: '[x]' }

/** Creates `TodoWrite` (D5.1): the model's own list of tasks. It is not stored; it exists only in the conversation. */
export function createTodoTool(): Tool {
  return {
    name: 'TodoWrite',
    description:
      'Writes down the whole list of things to do, to plan and to show progress. It replaces the previous list. Keep one item in_progress at a time.',
    inputSchema: {
      type: 'object',
      properties: {
        todos: {
          type: 'array',
          maxItems: 200,
          items: {
            type: 'object',
            properties: {
              content: { type: 'string', minLength: 1, maxLength: 2_000, description: 'What is to be done.' },
              status: { type: 'string', enum: Object.keys(MARKS) },
            },
            required: ['content', 'status'],
          },
        },
      },
      required: ['todos'],
    },
    defaultPolicy: 'allow',
    isReadOnly: true,
    describe: () => 'Write down the list of things to do.',
    run(input, context) {
      const { todos } = input as { todos: Todo[] }
      return attempt({ subject: 'TodoWrite', signal: context.signal }, async () => {
        const done = todos.filter(({ status }) => status === 'completed').length
        if (todos.length > 0) context.report(done / todos.length, `${done} of ${todos.length} done`)
        return succeed(
          todos.map(({ content, status }) => `${MARKS[status]} ${content}`).join('\n') || 'The list is empty.',
        )
      })
    },
  }
}
