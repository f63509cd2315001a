/** A prompt to begin with. */
export type Starter = { id: string; title: string; hint: string; prompt: string }

const DEMO: readonly Starter[] = [
  {
    id: 'permission',
    title: 'Write a note, but ask me first',
    hint: 'The agent calls a tool and waits until you allow it',
    prompt: [
      'Write a note, but ask me first.',
      '/think A note is a good beginning. Writing needs the permission of a person.',
      '/tool Write {"path": "notes/hello.md", "content": "# Hello\\n\\nThis note was written by the demo.\\n"}',
      '/say The note is in `notes/hello.md`. **You** decided that it may be written.',
    ].join('\n'),
  },
  {
    id: 'tools',
    title: 'Look around in the workspace',
    hint: 'Two tool calls that need no permission',
    prompt: [
      'Look around in the workspace, and tell me what is there.',
      '/think First the names of the files, then what is in them.',
      '/tool Glob {"pattern": "**/*"}',
      '/tool Grep {"pattern": "Hello"}',
      '/say That is all there is in this workspace.',
    ].join('\n'),
  },
]

const REAL: readonly Starter[] = [
  {
    id: 'permission',
    title: 'Write a note, but ask me first',
    hint: 'The agent calls a tool and waits until you allow it',
    prompt: 'Write a note of three lines about what you can do into notes/hello.md, then read it back to me.',
  },
  {
    id: 'tools',
    title: 'What can you do here?',
    hint: 'An answer without a tool',
    prompt: 'Which tools do you have here, and what is each good for? Answer with a short list.',
  },
]

export const startersFor = (isDemo: boolean): readonly Starter[] => (isDemo ? DEMO : REAL)
