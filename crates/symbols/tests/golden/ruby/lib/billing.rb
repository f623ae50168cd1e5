require 'json'
require_relative 'billing/invoice'

module Billing
  VERSION = '1.0'.freeze
  autoload :Report, 'billing/report'

  class Error < StandardError; end

  def self.setup(path = 'billing.json', &block)
    Invoice.load(path).tap(&block)
  end

  def helper(...)
    setup(...)
  end
  module_function :helper
end
