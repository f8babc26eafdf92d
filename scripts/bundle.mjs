// Importing `heed` loads one file instead of some 150: that is four fifths of what importing costs. The other entries stay as they
// are; what they share with it is small, and errors are told by a mark that both copies have.
import { rolldown } from 'rolldown'

const build = await rolldown({
  input: 'dist/index.js',
  platform: 'node',
  // Drivers and validators are loaded when they are used.
  external: [/^node:/, /^[^./]/, /store\/libsql\//],
  onwarn(warning) {
    throw new Error(warning.message)
  },
})
await build.write({ file: 'dist/index.js', format: 'esm', minify: false })
await build.close()
