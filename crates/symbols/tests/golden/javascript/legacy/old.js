var util = require('../src/money.mjs');
var fs = require('fs');

function Legacy(name) { this.name = name; }
Legacy.prototype.greet = function (other) { return util.formatMoney(1); };
Legacy.build = function () {};
exports.start = function (port) {};
module.exports.stop = () => {};
module.exports = { restart: function (soon) {}, Legacy };
