// Starts `tilewise lsp` for .cu and .cuh files.
const { workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

exports.activate = async () => {
  const [command, ...args] = workspace.getConfiguration('tilewise').get('command');
  const documentSelector = [{ scheme: 'file', language: 'cuda-cpp' }, { scheme: 'file', pattern: '**/*.{cu,cuh}' }];
  client = new LanguageClient('tilewise', 'tilewise', { command, args }, { documentSelector });
  await client.start();
};

exports.deactivate = () => client?.stop();
